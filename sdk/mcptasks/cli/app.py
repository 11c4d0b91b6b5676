"""The commands and their options."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Kubernetes-native durable tasks for MCP.",
)


@app.callback()
def _commands() -> None:
    """Keeps ``dev`` a command of its own, however few there are."""


@app.command()
def version() -> None:
    """Print the version."""
    from importlib import metadata

    typer.echo(f"mcptasks {metadata.version('mcptasks')}")


@app.command()
def dev(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port for MCP clients; 0 = the last one used here, else a free one.")
    ] = 8080,
    api_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the Kubernetes API; 0 = the last one, else a free one.")
    ] = 0,
    tools: Annotated[
        list[Path] | None, typer.Option(help="A file or folder with MCPTool documents to apply; may be repeated.")
    ] = None,
    state: Annotated[Path, typer.Option(help="Folder that keeps tasks, kubeconfig and logs.")] = Path(".mcptasks"),
    namespace: Annotated[str, typer.Option(help="Namespace of tools and tasks.")] = "default",
    max_pods: Annotated[int, typer.Option(min=1, help="How many Jobs run at once, as local processes.")] = 16,
    reset: Annotated[
        bool, typer.Option("--reset", help="Forget all tasks and tools of the state folder first.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not log task changes.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show all that operator and service log.")] = False,
) -> None:
    """Run everything on this machine: a control plane, the operator and the service, Jobs as local processes."""
    from mcptasks_local.dev.options import Options
    from mcptasks_local.dev.run import run

    raise typer.Exit(
        run(
            Options(
                port=port,
                api_port=api_port,
                tools=tuple(tools or ()),
                state=state,
                namespace=namespace,
                max_pods=max_pods,
                reset=reset,
                quiet=quiet,
                verbose=verbose,
            )
        )
    )
