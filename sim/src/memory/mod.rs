//! SBUF, PSUM and HBM as bytes, with a record of which were ever written.
