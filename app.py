"""The page of RCR Scope. So far it only says what is there; the Scope itself is being built."""

from __future__ import annotations

import argparse

import gradio as gr

WHAT_IS_HERE = """
# RCR Scope

The core is here: ten KV selection policies over one instrumented engine, and a small captioner that ships
with the project. **The interactive page is not built yet.** Until it is, run the core in a terminal:

```
.venv/bin/python -m rcr_core caption assets/examples/5-ten-objects.png --policy rcr
.venv/bin/python -m rcr_core info runs/5-ten-objects.rcr.rcr
```

The first streams a caption and writes a complete trace; the second prints what the trace holds.
"""


def build_page() -> gr.Blocks:
    """The page."""
    with gr.Blocks(title="RCR Scope", analytics_enabled=False) as page:
        gr.Markdown(WHAT_IS_HERE)
    return page


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Serve the page of RCR Scope.")
    parser.add_argument("--host", default="127.0.0.1", help="address to serve on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=7860, help="port to serve on (default: 7860)")
    options = parser.parse_args(argv)
    build_page().launch(server_name=options.host, server_port=options.port, run_history=False)


if __name__ == "__main__":
    main()
