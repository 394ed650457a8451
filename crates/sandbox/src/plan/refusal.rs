//! Pure: reasons why a run is refused before anything starts.
//!
//! A refusal must never be caught to try again with less protection.

use std::path::PathBuf;

use automaton_core::error::Classified;
use thiserror::Error;

/// The reason why nothing will be run.
#[derive(Debug, Clone, PartialEq, Eq, Error, Classified)]
pub enum PlanRefusal {
    /// The machine lacks a feature that a layer needs.
    #[error("the sandbox needs {feature}, which this machine does not give: {reason}")]
    #[class(Config, hint = "{remedy}")]
    MissingFeature {
        /// The missing feature.
        feature: &'static str,
        /// One sentence on how to get it.
        remedy: &'static str,
        /// The result of the probe.
        reason: String,
    },
    /// There is nothing to run.
    #[error("the command is empty")]
    #[class(User)]
    NoProgram,
    /// An argument or variable cannot be passed to a program.
    #[error("the command or its environment contains a NUL byte")]
    #[class(User)]
    NulByte,
    /// Arguments and variables are too long.
    #[error("the command and its environment have {bytes} bytes; {bytes_max} are possible")]
    #[class(User)]
    TooLong {
        /// Their sum.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A variable's name is empty or contains an equals sign.
    #[error("{0:?} cannot be the name of an environment variable")]
    #[class(User)]
    VariableName(String),
    /// A host path is not absolute.
    #[error("the host path {} is not absolute", .0.display())]
    #[class(Internal)]
    RelativePath(PathBuf),
    /// A path inside is not absolute, not plain, or reserved.
    #[error("nothing can be bound at {} in the sandbox", .0.display())]
    #[class(Internal)]
    BindTarget(PathBuf),
    /// A descriptor's number inside is out of range or used twice.
    #[error("descriptor number {0} is out of range or used twice")]
    #[class(Internal)]
    DescriptorNumber(i32),
}
