//! On macOS the names of Python's library are resolved when it is loaded.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
