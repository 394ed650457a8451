//! The table of the routes, and the OpenAPI document that is read off it.
//!
//! The types of a handler say all: its second argument who may call it, the others what it takes,
//! its answer what it gives. One that does not say who may call it does not compile. Must never
//! describe by hand what a type says.

use std::sync::{Arc, LazyLock};

use automaton_core::wire::cloud::{
    ErrorBody, IDEMPOTENCY_KEY, MessagesErrorBody, ModelErrorBody, UploadRequest,
};
use automaton_core::wire::x402::v1::PaymentRequiredV1;
use axum::Router;
use axum::extract::{DefaultBodyLimit, OriginalUri, Path, Query, Request, State};
use axum::handler::Handler;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{NoContent, Response};
use axum::routing::{MethodFilter, on};
use axum::{Json, middleware};
use bytes::Bytes;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::RefusalForm;
use super::extract::{
    AccessToken, JsonBody, MessagesCaller, OrDemand, OwnMachine, PortOwner, Public, RequestName,
    TypedResponse, UnparsedBody,
};
use super::files::{FilesMachine, UploadBody};
use crate::access::Caller;
use crate::app::App;
use crate::error::ApiError;

/// The routes so far, and what is known of them.
pub(super) struct RouteTable {
    router: Router<Arc<App>>,
    paths: Map<String, Value>,
    schemas: SchemaGenerator,
}

impl RouteTable {
    pub(super) fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        Self { router: Router::new(), paths: Map::new(), schemas: settings.into_generator() }
    }

    pub(super) fn get<T: 'static>(
        self,
        path: &str,
        summary: &str,
        handler: impl Operation<T>,
    ) -> Self {
        self.add(MethodFilter::GET, "get", path, summary, handler)
    }

    pub(super) fn post<T: 'static>(
        self,
        path: &str,
        summary: &str,
        handler: impl Operation<T>,
    ) -> Self {
        self.add(MethodFilter::POST, "post", path, summary, handler)
    }

    pub(super) fn put<T: 'static>(
        self,
        path: &str,
        summary: &str,
        handler: impl Operation<T>,
    ) -> Self {
        self.add(MethodFilter::PUT, "put", path, summary, handler)
    }

    pub(super) fn delete<T: 'static>(
        self,
        path: &str,
        summary: &str,
        handler: impl Operation<T>,
    ) -> Self {
        self.add(MethodFilter::DELETE, "delete", path, summary, handler)
    }

    fn add<T: 'static, H: Operation<T>>(
        mut self,
        filter: MethodFilter,
        method: &str,
        path: &str,
        summary: &str,
        handler: H,
    ) -> Self {
        let mut operation = OperationBuilder {
            schemas: &mut self.schemas,
            refusals: RefusalForm::of_path(path),
            security: json!([]),
            parameters: path.split('{').skip(1).map(path_parameter).collect(),
            body: None,
            responses: Map::new(),
        };
        H::describe(&mut operation);
        let OperationBuilder { security, parameters, body, responses, .. } = operation;
        let mut described = json!({ "summary": summary, "security": security });
        if !parameters.is_empty() {
            described["parameters"] = parameters.into();
        }
        if let Some(content) = body {
            described["requestBody"] = json!({ "required": true, "content": content });
        }
        described["responses"] = responses.into();
        self.paths.entry(path).or_insert_with(|| json!({}))[method] = described;
        Self { router: self.router.route(path, on(filter, handler)), ..self }
    }

    /// The routes that `build` adds, with a limit of their own for bodies, in bytes.
    pub(super) fn with_body_limit(self, bytes: usize, build: impl FnOnce(Self) -> Self) -> Self {
        self.layered(build, |routes| routes.layer(DefaultBodyLimit::max(bytes)))
    }

    /// The routes that `build` adds, whose answers nobody may keep.
    pub(super) fn unstored(self, build: impl FnOnce(Self) -> Self) -> Self {
        self.layered(build, |routes| routes.layer(middleware::map_response(super::unstored)))
    }

    fn layered(
        mut self,
        build: impl FnOnce(Self) -> Self,
        layer: impl FnOnce(Router<Arc<App>>) -> Router<Arc<App>>,
    ) -> Self {
        let before = std::mem::take(&mut self.router);
        let built = build(self);
        Self { router: before.merge(layer(built.router)), ..built }
    }

    pub(super) fn into_router(self) -> Router<Arc<App>> {
        self.router
    }

    /// The OpenAPI document.
    pub(super) fn into_document(mut self) -> Value {
        let bearer = |description: &str| json!({ "type": "http", "scheme": "bearer", "description": description });
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "automaton cloud",
                "version": "1",
                "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            },
            "servers": [{ "url": "/" }],
            "paths": self.paths,
            "components": {
                "securitySchemes": {
                    API_KEY: bearer("An API key, from POST /v1/auth/api-keys."),
                    ACCESS_TOKEN: bearer("An access token, from POST /v1/auth/verify."),
                    X_API_KEY: {
                        "type": "apiKey", "in": "header", "name": "x-api-key",
                        "description": "An API key, as clients of Anthropic send it.",
                    },
                },
                "schemas": self.schemas.take_definitions(true),
            },
        })
    }
}

/// The OpenAPI document of the cloud's routes.
#[must_use]
pub fn openapi() -> Value {
    super::table().into_document()
}

pub(super) async fn document(_: State<Arc<App>>, _: Public) -> Json<Value> {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi);
    Json(DOCUMENT.clone())
}

/// A parameter of a path, from what follows its brace.
fn path_parameter(rest: &str) -> Value {
    let name = rest.split('}').next().unwrap_or_default();
    json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
}

/// The description of an operation.
pub(super) struct OperationBuilder<'a> {
    schemas: &'a mut SchemaGenerator,
    /// In what form its refusals are.
    refusals: RefusalForm,
    security: Value,
    parameters: Vec<Value>,
    body: Option<Value>,
    responses: Map<String, Value>,
}

impl OperationBuilder<'_> {
    fn json<T: JsonSchema>(&mut self) -> Value {
        json!({ "application/json": { "schema": self.schemas.subschema_for::<T>() } })
    }

    fn responds(&mut self, status: &str, description: &str, content: Option<Value>) {
        let mut response = json!({ "description": description });
        if let Some(content) = content {
            response["content"] = content;
        }
        self.responses.insert(status.to_owned(), response);
    }
}

const API_KEY: &str = "apiKey";
const ACCESS_TOKEN: &str = "accessToken";
const X_API_KEY: &str = "xApiKey";

/// An argument that says who may call: the second of each handler, after the state.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say who may call the route",
    note = "the second argument of a handler is `Caller`, what has one, `AccessToken` or `Public`"
)]
pub(super) trait Authentication {
    /// The names of the schemes, each of which suffices; none where anybody may call.
    const SCHEMES: &'static [&'static str];
}

macro_rules! authentication {
    ($($type:ty = $schemes:expr),+ $(,)?) => {$(
        impl Authentication for $type { const SCHEMES: &'static [&'static str] = $schemes; }
    )+};
}

authentication! {
    Caller = &[API_KEY],
    OwnMachine = &[API_KEY],
    PortOwner = &[API_KEY],
    FilesMachine = &[API_KEY],
    MessagesCaller = &[X_API_KEY, API_KEY],
    AccessToken = &[ACCESS_TOKEN],
    Public = &[],
}

/// A part of a request, or of an answer, that says what it is.
pub(super) trait Described {
    fn describe(operation: &mut OperationBuilder<'_>);
}

macro_rules! described {
    ($($({$($generics:tt)+})? $type:ty => |$operation:ident| $body:expr;)+) => {$(
        impl $(<$($generics)+>)? Described for $type {
            fn describe($operation: &mut OperationBuilder<'_>) { $body }
        }
    )+};
}

described! {
    // What the path has is known from it, and headers are read for what extensions define.
    {T} Path<T> => |_operation| {};
    OriginalUri => |_operation| {};
    HeaderMap => |_operation| {};
    Request => |_operation| {};
    RequestName => |operation| operation.parameters.push(json!({
        "name": IDEMPOTENCY_KEY, "in": "header", "schema": { "type": "string" },
        "description": "The same request with the same name is carried out once.",
    }));
    {T: JsonSchema} Query<T> => |operation| query(operation, &schema_of::<T>());
    {T: JsonSchema} JsonBody<T> => |operation| operation.body = Some(operation.json::<T>());
    {T: JsonSchema} UnparsedBody<T> => |operation| operation.body = Some(operation.json::<T>());
    Bytes => |operation| operation.body = Some(json!({ "application/json": {} }));
    UploadBody => |operation| {
        let mut content = operation.json::<UploadRequest>();
        content["application/octet-stream"] = json!({});
        content["multipart/form-data"] = json!({});
        operation.body = Some(content);
    };

    {T: JsonSchema} Json<T> => |operation| {
        let content = operation.json::<T>();
        operation.responds("200", "Done.", Some(content));
    };
    {T: JsonSchema} (StatusCode, Json<T>) => |operation| {
        let content = operation.json::<T>();
        operation.responds("default", "What became of it.", Some(content));
    };
    NoContent => |operation| operation.responds("204", "Done.", None);
    Response => |operation| operation.responds("200", "Done.", Some(json!({ "*/*": {} })));
    {T: Described} OrDemand<T> => |operation| {
        T::describe(operation);
        let content = operation.json::<PaymentRequiredV1>();
        operation.responds("402", "It has to be paid for, as x402 says.", Some(content));
    };
    {T: Described} TypedResponse<T> => |operation| T::describe(operation);
    {T: Described} Result<T, ApiError> => |operation| {
        T::describe(operation);
        let content = match operation.refusals {
            RefusalForm::OpenAi => operation.json::<ModelErrorBody>(),
            RefusalForm::Anthropic => operation.json::<MessagesErrorBody>(),
            RefusalForm::Own => operation.json::<ErrorBody>(),
        };
        operation.responds("default", "It was refused.", Some(content));
    };
}

fn schema_of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}

fn query(operation: &mut OperationBuilder<'_>, schema: &Value) {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.contains(&json!(name));
        let parameter =
            json!({ "name": name, "in": "query", "required": is_required, "schema": schema });
        operation.parameters.push(parameter);
    }
}

/// A handler whose types say all about its route; `T` is axum's.
pub(super) trait Operation<T>: Handler<T, Arc<App>> {
    fn describe(operation: &mut OperationBuilder<'_>);
}

macro_rules! operation {
    ($($input:ident)*) => {
        impl<F, Fut, Output, M, A, $($input),*> Operation<(M, State<Arc<App>>, A, $($input,)*)> for F
        where
            F: Fn(State<Arc<App>>, A, $($input),*) -> Fut
                + Handler<(M, State<Arc<App>>, A, $($input,)*), Arc<App>>,
            Fut: Future<Output = Output>,
            A: Authentication,
            Output: Described,
            $($input: Described,)*
        {
            fn describe(operation: &mut OperationBuilder<'_>) {
                let schemes = A::SCHEMES.iter().map(|name| json!({ *name: [] }));
                operation.security = schemes.collect();
                $($input::describe(operation);)*
                Output::describe(operation);
            }
        }
    };
}

operation! {}
operation! { First }
operation! { First Second }
operation! { First Second Third }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_document_is_the_one_of_the_routes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/openapi.json");
        let published: Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let message = "run `automaton cloud openapi > crates/cloud/schema/openapi.json`";
        assert!(published == openapi(), "{message}");
    }
}
