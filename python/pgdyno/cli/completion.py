"""``pgdyno completion``: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_PGDYNO_COMPLETE"


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell, to be read by it at start.

    In the files of the example it is read by every new shell. bash needs the package bash-completion for that, and zsh a line
    in ~/.zshrc before `compinit`: `fpath+=~/.zfunc`.

    \b
    Example:
      pgdyno completion bash > ~/.local/share/bash-completion/completions/pgdyno
      pgdyno completion zsh > ~/.zfunc/_pgdyno
      pgdyno completion fish > ~/.config/fish/completions/pgdyno.fish
    """
    from pgdyno.cli.main import cli

    completion = get_completion_class(shell)
    assert completion is not None, f"click knows no completion for {shell}"
    click.echo(completion(cli, {}, "pgdyno", VARIABLE).source())
