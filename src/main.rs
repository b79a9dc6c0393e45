//! (top)
fn main() {}
