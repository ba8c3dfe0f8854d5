//! What the timeline means: critical path, utilisation, verdicts.
