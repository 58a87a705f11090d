//! Both ends of the protocol against each other, over frames that a test delivers, holds back or loses.

mod converge;
mod fixture;
mod scripted;
