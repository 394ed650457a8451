//! Refuses requests of other clouds' APIs that this cloud does not serve. Must never answer as if
//! it did.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};

use crate::app::App;
use crate::error::ApiError;

/// The code of a refusal: no cloud of this kind has that.
const NOT_OFFERED: &str = "NOT_OFFERED";

/// Refuses what is no route. What clients know from elsewhere is refused by name, and not as
/// something that was not found: that they would ask for again.
pub(super) async fn refuse(State(app): State<Arc<App>>, headers: HeaderMap, uri: Uri) -> ApiError {
    let Some(why) = instead(uri.path()) else {
        return ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", "there is no such route");
    };
    match app.access.caller(&headers).await {
        Ok(_) => ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, NOT_OFFERED, why),
        Err(refusal) => refusal,
    }
}

/// Returns the replacement for an absent route.
fn instead(path: &str) -> Option<&'static str> {
    let rest = path.strip_prefix("/v1/")?;
    let mut names = rest.split('/');
    match (names.next()?, names.next().is_some(), names.next()) {
        ("domains", ..) => Some(
            "This cloud sells no domains and serves no DNS. An exposed port has a public_url: \
             POST /v1/sandboxes/{id}/ports/expose",
        ),
        ("sandboxes", true, Some("run")) => Some(
            "This cloud runs commands, not code by itself. Name the interpreter in a command, \
             such as python3 -c '…': POST /v1/sandboxes/{id}/exec",
        ),
        ("sandboxes", true, Some("pty" | "terminal-session")) => Some(
            "This cloud has no terminals. Run commands one by one; what they leave running stays: \
             POST /v1/sandboxes/{id}/exec",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_is_named_and_nothing_else() {
        for path in [
            "/v1/domains",
            "/v1/domains/search",
            "/v1/domains/a.example/dns/1",
            "/v1/sandboxes/1/run",
            "/v1/sandboxes/1/pty",
            "/v1/sandboxes/1/pty/2/write",
            "/v1/sandboxes/1/terminal-session",
        ] {
            assert!(instead(path).is_some(), "{path}");
        }
        for path in ["/", "/v1/domainsx", "/v1/domain/x", "/v1/sandboxes/1/x", "/domains/search"] {
            assert!(instead(path).is_none(), "{path}");
        }
    }
}
