//! Turns work into time.
