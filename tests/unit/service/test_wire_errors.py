"""The table of errors."""

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ErrorData
from pydantic import BaseModel, ValidationError

from mcptasks_crds.lifecycle import State
from mcptasks_service import errors
from mcptasks_service.errors import ServiceError
from mcptasks_service.wire_errors import CODES, error_data, http_headers, http_status

LIMIT = errors.LimitExceeded("Too fast", "polls", "60/minute", 1500)


@pytest.mark.req("R-2.6", "R-8.1")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.TaskNotFound("a"), -32602),
        (errors.TaskExists("a"), -32602),
        (errors.ResultNotReady("a", State.WORKING), -32602),
        (errors.TaskEnded("a", State.FAILED), -32602),
        (errors.ToolNotFound("a"), -32602),
        (errors.ArgumentsInvalid("a"), -32602),
        (errors.Unavailable("a"), -32603),
        (LIMIT, -32029),
    ],
)
def test_every_refusal_has_its_code_and_its_own_words(error: ServiceError, code: int) -> None:
    data = error_data(error)
    assert (data.code, data.message) == (code, str(error))


def test_the_table_has_every_error() -> None:
    below = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ServiceError)]
    assert all(any(base in CODES for base in kind.__mro__) for kind in below if kind is not ServiceError)


def test_a_limit_tells_its_terms() -> None:
    data = error_data(LIMIT)
    assert data.data == {"reason": "polls", "limit": "60/minute", "retryAfterMs": 1500}
    assert http_headers(data, modern=True) == ((b"retry-after", b"2"),)
    assert http_headers(data, modern=False) == http_headers(None, modern=True) == ()


def test_a_defect_of_the_parameters_is_named_without_its_value() -> None:
    class Params(BaseModel):
        name: int

    with pytest.raises(ValidationError) as invalid:
        Params.model_validate({"name": "secret"})
    data = error_data(invalid.value)
    assert (data.code, "name: " in data.message, "secret" in data.message) == (-32602, True, False)


def test_other_errors() -> None:
    assert error_data(MCPError(code=-1, message="own")) == ErrorData(code=-1, message="own")
    assert error_data(RecursionError()).code == -32602
    assert error_data(OSError("secret")) == ErrorData(code=-32603, message="Internal server error")


@pytest.mark.parametrize(
    ("code", "modern"), [(-32602, 400), (-32601, 404), (-32021, 400), (-32020, 400), (-32029, 429), (-32603, 200)]
)
def test_the_era_decides_the_status(code: int, modern: int) -> None:
    error = ErrorData(code=code, message="", data={"retryAfterMs": 1})
    assert (http_status(error, modern=True), http_status(error, modern=False)) == (modern, 200)
    assert http_status(None, modern=True) == 200
