"""The HTTP interface of the runs: plain Starlette routes under /scope over a RunStore."""

from rcr_core.web.routes import scope_routes

__all__ = ["scope_routes"]
