//! (world)
pub mod disk;
pub mod dns;
pub mod net;
pub mod signal;
pub mod tls;
pub mod work;
