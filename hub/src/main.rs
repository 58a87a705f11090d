//! Not wired yet.

fn main() {}
