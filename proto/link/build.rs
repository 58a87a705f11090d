//! Compiles `proto/fairlead.proto` without protoc.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=../fairlead.proto");
    let descriptors = protox::compile(["fairlead.proto"], [".."])?;
    tonic_prost_build::configure().build_transport(false).btree_map(".").compile_fds(descriptors)?;
    Ok(())
}
