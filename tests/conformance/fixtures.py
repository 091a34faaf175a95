"""What the conformance suites expect a server to have, besides what ours has."""

import base64
from collections.abc import Mapping
from typing import Any

import anyio
from fastmcp import Context, FastMCP
from fastmcp.prompts import Message
from fastmcp.resources import ResourceContent, ResourceResult
from fastmcp.server.dependencies import get_context
from fastmcp.tools import FunctionTool
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    Completion,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
_SILENCE = b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\2\0\0\0\x80\x80"
WAV = base64.b64encode(_SILENCE)

TOOL: dict[str, Any] = {"description": "A fixture.", "output_schema": None}

TEXTS = {
    "test_simple_text": [TextContent(type="text", text="This is a simple text response for testing.")],
    "test_image_content": [ImageContent(type="image", data=PNG, mime_type="image/png")],
    "test_audio_content": [AudioContent(type="audio", data=WAV.decode(), mime_type="audio/wav")],
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

MIRRORED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "x-mcp-header": "Priority"},
        "query": {"type": "string"},
    },
    "required": ["region"],
}
"""Arguments that clients repeat in headers (SEP-2243)."""

DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}

_TITLED = [{"const": f"value{n}", "title": title} for n, title in enumerate(("First", "Second", "Third"), 1)]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


def add_fixtures(server: FastMCP) -> None:
    """Add all of them."""
    _add_contents(server)
    _add_conversations(server)
    _add_requests(server)
    _add_questions(server)
    _add_resources(server)
    _add_prompts(server)


def _resource(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def _add_contents(server: FastMCP) -> None:
    def saying(content: list[Any]) -> Any:
        async def tool() -> list[ContentBlock]:
            return content

        return tool

    mixed = [
        TextContent(type="text", text="Multiple content types test:"),
        *TEXTS["test_image_content"],
        _resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ]
    embedded = [_resource("test://embedded-resource", "This is an embedded resource content.")]
    contents = {**TEXTS, "test_multiple_content_types": mixed, "test_embedded_resource": embedded}
    for name, content in contents.items():
        server.tool(saying(content), name=name, **TOOL)

    async def schema_tool(arguments: Mapping[str, Any] | None = None) -> str:
        return str(arguments)

    async def mirrored_tool(region: str, priority: int | None = None, query: str | None = None) -> str:
        return f"{region} {priority} {query}"

    for name, function, schema in (
        ("json_schema_2020_12_tool", schema_tool, SCHEMA),
        ("test_custom_headers", mirrored_tool, MIRRORED),
    ):
        shaped = FunctionTool.from_function(function, name=name, **TOOL)
        server.add_tool(shaped.model_copy(update={"parameters": schema}))


def _add_conversations(server: FastMCP) -> None:
    @server.tool(**TOOL)
    async def test_error_handling() -> str:
        raise MCPError(code=-32603, message="This tool intentionally returns an error for testing")

    @server.tool(**TOOL)
    async def test_tool_with_progress(context: Context) -> str:
        for step in (0, 50, 100):
            await context.report_progress(step, 100)
            await anyio.sleep(0.05)
        return "done"

    @server.tool(**TOOL)
    async def test_tool_with_logging(context: Context) -> str:
        for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await context.info(said)
            await anyio.sleep(0.05)
        return "done"

    @server.tool(**TOOL)
    async def test_reconnection(context: Context) -> str:
        await context.close_sse_stream()
        await anyio.sleep(0.1)
        return "Reconnection test completed successfully"

    @server.tool(**TOOL)
    async def test_missing_capability(context: Context) -> str:
        declared = context.session.client_capabilities
        if declared is None or declared.sampling is None:
            raise MCPError(
                code=MISSING_REQUIRED_CLIENT_CAPABILITY,
                message="The sampling capability is needed",
                data={"requiredCapabilities": {"sampling": {}}},
            )
        return "there"


def _add_requests(server: FastMCP) -> None:
    """Add tools that ask something back while they run, which older protocols have."""

    @server.tool(**TOOL)
    async def test_sampling(prompt: str, context: Context) -> str:
        said = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
        answer = await context.session.create_message(  # pyright: ignore[reportDeprecated]
            [said], max_tokens=100, related_request_id=context.request_id
        )
        return f"LLM response: {getattr(answer.content, 'text', answer.content)}"

    async def ask(context: Context, message: str, schema: dict[str, Any]) -> str:
        answer = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
        return f"Elicitation completed: action={answer.action}, content={answer.content}"

    @server.tool(**TOOL)
    async def test_elicitation(message: str, context: Context) -> str:
        fields = {name: {"type": "string", "description": name} for name in ("username", "email")}
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        return f"User response: {await ask(context, message, schema)}"

    @server.tool(**TOOL)
    async def test_elicitation_sep1034_defaults(context: Context) -> str:
        return await ask(context, "Please check", {"type": "object", "properties": DEFAULTS, "required": []})

    @server.tool(**TOOL)
    async def test_elicitation_sep1330_enums(context: Context) -> str:
        return await ask(context, "Please choose", {"type": "object", "properties": ENUMS, "required": []})


def _form(message: str, **fields: str) -> ElicitRequest:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(text: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=50))


def _add_questions(server: FastMCP) -> None:
    """Add tools that answer once they have been told what they ask for."""
    name, question, roots = (
        _form("What is your name?", name="string"),
        _sample("What is the capital?"),
        ListRootsRequest(),
    )
    asking: dict[str, tuple[dict[str, InputRequest], str | None]] = {
        "elicitation": ({"user_name": name}, None),
        "sampling": ({"capital_question": question}, None),
        "list_roots": ({"client_roots": roots}, None),
        "request_state": ({"confirm": _form("Please confirm", ok="boolean")}, "asked"),
        "multiple_inputs": ({"user_name": name, "greeting": _sample("Greet"), "client_roots": roots}, "asked"),
        "tampered_state": ({"confirm": _form("Please confirm", ok="boolean")}, "asked"),
    }

    def tool_for(requests: dict[str, InputRequest], state: str | None) -> Any:
        async def tool(context: Context) -> str | InputRequiredResult:
            given = context.input_responses or {}
            if requests.keys() <= given.keys() and context.request_state == state:
                return f"state-ok: {sorted(str(given[one].model_dump()) for one in requests)}"
            return InputRequiredResult(input_requests=requests, request_state=state)

        return tool

    for short, (requests, state) in asking.items():
        server.tool(tool_for(requests, state), name=f"test_input_required_result_{short}", **TOOL)

    @server.tool(**TOOL)
    async def test_input_required_result_multi_round(context: Context) -> str | InputRequiredResult:
        given, state = context.input_responses or {}, context.request_state
        if state == "two" and "step2" in given:
            return "both are there"
        if state == "one" and "step1" in given:
            color = _form("Step 2: What is your favorite color?", color="string")
            return InputRequiredResult(input_requests={"step2": color}, request_state="two")
        first = _form("Step 1: What is your name?", name="string")
        return InputRequiredResult(input_requests={"step1": first}, request_state="one")

    @server.tool(**TOOL)
    async def test_input_required_result_capabilities(context: Context) -> str | InputRequiredResult:
        if context.input_responses:
            return "told"
        declared = context.session.client_capabilities
        requests: dict[str, InputRequest] = {}
        if declared is not None and declared.sampling is not None:
            requests["sample"] = question
        if declared is not None and declared.elicitation is not None:
            requests["user_name"] = name
        return InputRequiredResult(input_requests=requests, request_state="asked")


def _add_resources(server: FastMCP) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> ResourceResult:
        return ResourceResult([ResourceContent(base64.b64decode(PNG), mime_type="image/png")])

    @server.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        return "Watched resource content"

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:  # noqa: A002
        return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'


def _add_prompts(server: FastMCP) -> None:
    @server.prompt(description="A fixture.")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="A fixture.")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="A fixture.")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803
        embedded = _resource(resourceUri, "Embedded resource content for testing.")
        return [Message(embedded), Message("Please process the embedded resource above.")]

    @server.prompt(description="A fixture.")
    def test_prompt_with_image() -> list[Message]:
        return [Message(TEXTS["test_image_content"][0]), Message("Please analyze the image above.")]

    @server.prompt(description="A fixture.")
    async def test_input_required_result_prompt() -> Any:
        if "user_context" in (get_context().input_responses or {}):
            return "told"
        return InputRequiredResult(input_requests={"user_context": _form("What context?", context="string")})

    @server.completion
    async def complete(_reference: Any, argument: Any, _context: Any) -> Completion:
        return Completion(values=[f"{argument.value}{ending}" for ending in ("-a", "-b")], total=2, has_more=False)
