"""Base class of the API models.

spec.py, status.py, blocker_status.py and condition_model.py derive from it; crd.py reads the fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from pydantic import ValidationInfo, ValidatorFunctionWrapHandler


def _strings(value: Any) -> Any:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else value


#: A list that drops entries which are not strings.
StringList = Annotated[list[str], BeforeValidator(_strings)]


class ApiModel(BaseModel):
    """A part of an object, with camelCase names in JSON.

    Parsing never fails: a field of the wrong type counts as absent. The API server enforces the schema; an invalid
    field was stored by a newer version or before a rule existed, and must not make the other fields unreadable.
    """

    model_config = ConfigDict(
        # Most models are never used at run time, and each costs memory.
        defer_build=True,
        alias_generator=to_camel,
        validate_by_name=True,
        extra="allow",
        frozen=True,
        strict=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_if_not_an_object(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if isinstance(key, str)}
        return value if isinstance(value, cls) else {}

    @field_validator("*", mode="wrap")
    @classmethod
    def _default_if_invalid(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return handler(value)
        except ValidationError:
            return cls.model_fields[str(info.field_name)].get_default(call_default_factory=True)

    @classmethod
    def read(cls, value: object) -> Self:
        """Return the model of a raw JSON object; an empty one for anything else."""
        return cls.model_validate(value)


class NamedObject(ApiModel):
    """A part of the status about one object of the cluster."""

    kind: str = Field(default="", description="Kind of the object.")
    namespace: str = Field(default="", description="Namespace of the object; absent for cluster-scoped objects.")
    name: str = Field(default="", description="Name of the object.")
