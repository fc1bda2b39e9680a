//! The catalogue: what is written, what it means, and what the model makes of it.

mod array;
mod behaviour;
mod depth_one;
mod facts;
mod faults;
mod instances;
mod offers;
mod properties;
mod rates;
mod replay;
mod service_times;
mod specification;
mod twin;
