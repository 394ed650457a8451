"""Reads traces as JSON, one a line, by the definitions of OpenTelemetry; prints the names of their spans."""

import base64
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

for line in sys.stdin:
    # Strict: a field that the definitions do not have is an error.
    request = json_format.Parse(line, ExportTraceServiceRequest())
    (resource,) = request.resource_spans
    (scope,) = resource.scope_spans
    assert any(a.key == "service.name" and a.value.string_value == "automaton" for a in resource.resource.attributes)
    for span in scope.spans:
        # Ids are hexadecimal in the JSON of OTLP, and base64 in that of protobuf.
        assert len(base64.b64encode(span.trace_id)) == 32 and len(base64.b64encode(span.span_id)) == 16
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    print(",".join(span.name for span in scope.spans))
