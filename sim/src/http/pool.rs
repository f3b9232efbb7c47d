//! Connections to an upstream, kept for reuse.

use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpStream;

use super::Conn;

/// Idle connections to one upstream address.
pub(crate) struct Pool {
    address: String,
    max_idle: usize,
    idle: Mutex<Vec<Conn>>,
}

impl Pool {
    /// A pool for `host:port` that keeps at most `max_idle` connections; 0 turns reuse off.
    pub(crate) fn new(address: String, max_idle: usize) -> Self {
        Self {
            address,
            max_idle,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// The address, for the `host` field.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The most recently used connection that still lives.
    pub(crate) fn take_idle(&self) -> Option<Conn> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(mut conn) = idle.pop() {
            if conn.is_quiet() {
                return Some(conn);
            }
        }
        None
    }

    /// A fresh connection.
    pub(crate) async fn connect(&self) -> io::Result<Conn> {
        Conn::new(TcpStream::connect(&self.address).await?)
    }

    /// Gives a connection back after a complete exchange.
    pub(crate) fn put(&self, conn: Conn) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.max_idle {
            idle.push(conn);
        }
    }
}
