//! Runs a program in program order: outputs, trace, findings.
