//! Free loopback ports.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// A loopback port that nothing listened on a moment ago.
pub fn free() -> Result<u16> {
    let [port] = free_ports()?;
    Ok(port)
}

/// Several such ports, all different: they are held until all are found.
pub(super) fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    drop(held);
    Ok(ports)
}
