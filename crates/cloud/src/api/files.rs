//! Files of a machine: `/v1/sandboxes/{id}/files/…`.
//!
//! Paths are those of the machine, from `/root` where they do not begin with a slash. No link is
//! followed and nothing outside the machine's own folders is touched, whatever a path says.

use std::convert::Infallible;
use std::sync::Arc;

use automaton_core::error::Classified as _;
use automaton_core::wire::cloud::{DISK_FULL, FilesReply, UploadReply, UploadRequest};
use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use schemars::JsonSchema;
use serde::Deserialize;

use super::extract::{JsonBody, OwnMachine, json};
use super::machines::no_workers;
use super::{FILE_BYTES_MAX, form};
use crate::app::App;
use crate::db::machines::Machine;
use crate::error::ApiError;
use crate::machines::driver::{DriverError, FileRead, Pieces};
use crate::machines::lifecycle;

/// Bytes that are looked at to tell text from other content.
const SNIFFED: usize = 8192;

/// The query of everything that is about one file.
#[derive(Deserialize, JsonSchema)]
pub(super) struct FileQuery {
    #[serde(default)]
    path: String,
}

pub(super) async fn upload_text(
    State(app): State<Arc<App>>,
    FilesMachine(machine): FilesMachine,
    JsonBody(UploadRequest { path, content }): JsonBody<UploadRequest>,
) -> Result<Json<UploadReply>, ApiError> {
    let pieces = stream::iter([Ok(Bytes::from(content))]);
    app.upload(&machine, path, Box::pin(pieces)).await
}

pub(super) async fn upload(
    State(app): State<Arc<App>>,
    FilesMachine(machine): FilesMachine,
    Query(FileQuery { path }): Query<FileQuery>,
    UploadBody { media, body }: UploadBody,
) -> Result<Json<UploadReply>, ApiError> {
    let media_type = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_form = media_type == "multipart/form-data";
    let cut = |error: axum::Error| DriverError::Cut(error.to_string());
    if !is_form && (!path.is_empty() || media_type != "application/json") {
        let pieces = body.into_data_stream().map_err(cut);
        return app.upload(&machine, path, Box::pin(pieces)).await;
    }
    let whole = to_bytes(body, FILE_BYTES_MAX).await.map_err(|error| app.undone(&cut(error)))?;
    let (named, content) = match is_form {
        true => form::file(&whole, &media)
            .ok_or_else(|| ApiError::invalid("the form has no field `file` with the content"))?,
        false => {
            let UploadRequest { path, content } = json(&whole)?;
            (Some(path), Bytes::from(content))
        }
    };
    let path = if path.is_empty() { named.unwrap_or_default() } else { path };
    app.upload(&machine, path, Box::pin(stream::iter([Ok(content)]))).await
}

/// A file as it comes: its bytes, with its path in the query; or both in JSON, or in a form.
pub(super) struct UploadBody {
    media: String,
    body: Body,
}

impl FromRequest<Arc<App>> for UploadBody {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &Arc<App>) -> Result<Self, Infallible> {
        let media = request.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let media = media.unwrap_or_default().to_owned();
        Ok(Self { media, body: request.into_body() })
    }
}

/// A file as text, if it is some.
pub(super) async fn read(
    State(app): State<Arc<App>>,
    FilesMachine(machine): FilesMachine,
    Query(FileQuery { path }): Query<FileQuery>,
) -> Result<Response, ApiError> {
    let FileRead { bytes, mut pieces } = app.open(&machine, path).await?;
    let first = pieces.next().await.transpose().map_err(|error| app.undone(&error))?;
    let first = first.unwrap_or_default();
    let is_text = !first[..first.len().min(SNIFFED)].contains(&0);
    let media = if is_text { "text/plain; charset=utf-8" } else { "application/octet-stream" };
    Ok(content(media, bytes, Box::pin(stream::iter([Ok(first)]).chain(pieces))))
}

pub(super) async fn download(
    State(app): State<Arc<App>>,
    FilesMachine(machine): FilesMachine,
    Query(FileQuery { path }): Query<FileQuery>,
) -> Result<Response, ApiError> {
    let FileRead { bytes, pieces } = app.open(&machine, path).await?;
    Ok(content("application/octet-stream", bytes, pieces))
}

/// A file on its way: as many bytes as were promised, or it breaks off.
fn content(media: &'static str, bytes: u64, pieces: Pieces) -> Response {
    let mut left = bytes;
    let exactly = pieces.map_ok(move |mut piece| {
        piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= piece.len() as u64;
        piece
    });
    let mut response = Body::from_stream(exactly).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    response
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    FilesMachine(machine): FilesMachine,
    Query(FileQuery { path }): Query<FileQuery>,
) -> Result<Json<FilesReply>, ApiError> {
    let path = if path.is_empty() { "~".to_owned() } else { path };
    let folder = app.rent()?.machines.driver.list(machine.id, path).await;
    let folder = folder.map_err(|error| app.undone(&error))?;
    Ok(Json(FilesReply { path: folder.path, files: folder.files, truncated: folder.is_cut }))
}

/// A machine of the caller's whose files can be used.
pub(super) struct FilesMachine(Machine);

impl FromRequestParts<Arc<App>> for FilesMachine {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let OwnMachine { machine, .. } = OwnMachine::from_request_parts(parts, app).await?;
        let still_shown = app.rent()?.machines.driver.shows_what_is_down();
        match machine.state {
            lifecycle::MachineState::Running => Ok(Self(machine)),
            lifecycle::MachineState::Stopped if still_shown => Ok(Self(machine)),
            // It could not be started again: its owner can get its files nevertheless.
            lifecycle::MachineState::Failed if still_shown && machine.was_healthy => {
                Ok(Self(machine))
            }
            other => Err(ApiError::conflict(format!("the sandbox is {}", other.name()))),
        }
    }
}

impl App {
    async fn open(&self, machine: &Machine, path: String) -> Result<FileRead, ApiError> {
        let reading = self.rent()?.machines.driver.read(machine.id, path).await;
        reading.map_err(|error| self.undone(&error))
    }

    async fn upload(
        &self,
        machine: &Machine,
        path: String,
        pieces: Pieces,
    ) -> Result<Json<UploadReply>, ApiError> {
        let machines = &self.rent()?.machines;
        let written = machines.write(machine, path, pieces).await;
        let (path, bytes) = written.map_err(|error| self.undone(&error))?;
        Ok(Json(UploadReply { success: true, path, bytes }))
    }

    /// The driver could not do it.
    pub(super) fn undone(&self, error: &DriverError) -> ApiError {
        let sentence = error.to_string();
        match error {
            DriverError::Path(_) => ApiError::invalid(sentence),
            DriverError::Missing(_) => ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", sentence),
            DriverError::Full(_) => {
                ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, DISK_FULL, sentence)
            }
            DriverError::Cut(_) => ApiError::invalid(sentence),
            DriverError::Busy => ApiError::new(StatusCode::TOO_MANY_REQUESTS, "BUSY", sentence),
            DriverError::Unavailable(_) => no_workers(&sentence),
            DriverError::Down | DriverError::Refused if error.kind().is_retryable() => {
                ApiError::unavailable(sentence)
            }
            other => ApiError::internal(&self.report, other),
        }
    }
}
