"""The base of what we read from the API server: tolerant, immutable, and keeping what it does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from pydantic import ValidatorFunctionWrapHandler
    from pydantic_core.core_schema import ValidationInfo


def _strings(value: Any) -> Any:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else value


def _string_values(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if isinstance(key, str) and isinstance(item, str)}


# A list and a map that leave out entries which are no strings, rather than being unreadable as a whole.
StringList = Annotated[list[str], BeforeValidator(_strings)]
StringMap = Annotated[dict[str, str], BeforeValidator(_string_values)]


class ApiModel(BaseModel):
    """A part of an object, with camelCase names on the wire.

    Reading never fails: a field whose value has another type reads as absent, and so does a part that is no object.
    The API server enforces the schema; what gets past it was written by a newer version or stored before a rule
    existed, and one odd field must not keep us from the others. Limits of the schema (lengths, enumerations) are
    therefore not checked here. Unknown fields are kept, and `dump` gives them back.
    """

    model_config = ConfigDict(
        # Built when first used: the manager reads few of the models, and each costs memory.
        defer_build=True,
        alias_generator=to_camel,
        validate_by_name=True,
        extra="allow",
        frozen=True,
        strict=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_where_no_object(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if isinstance(key, str)}
        return value if isinstance(value, cls) else {}

    @field_validator("*", mode="wrap")
    @classmethod
    def _absent_where_unreadable(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return handler(value)
        except ValidationError:
            return cls.model_fields[str(info.field_name)].get_default(call_default_factory=True)

    @classmethod
    def read(cls, value: object) -> Self:
        """The model of a raw JSON object; the empty one for anything else."""
        return cls.model_validate(value)

    def dump(self) -> dict[str, Any]:
        """Raw JSON of the fields that are there, unknown ones included."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
