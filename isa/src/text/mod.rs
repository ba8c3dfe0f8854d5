//! The text form of a program (`.nkir`): prints and parses back to the same value.
