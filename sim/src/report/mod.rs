//! What users see: text, JSON, Perfetto.
