"""``kubectl dra completion``: the script that adds completion to a shell."""

from __future__ import annotations

HELP = """Print the script that completes commands, flags and values in a shell.

\b
Examples:
  # kubectl dra <TAB>, if completion for kubectl itself is set up
  kubectl dra completion kubectl > ~/.local/bin/kubectl_complete-dra
  chmod +x ~/.local/bin/kubectl_complete-dra
  # kubectl-dra <TAB> in bash: now, or in each new shell
  source <(kubectl-dra completion bash)
  kubectl-dra completion bash > ~/.local/share/bash-completion/completions/kubectl-dra
  # in zsh, if ~/.zfunc is in fpath
  kubectl-dra completion zsh > ~/.zfunc/_kubectl-dra
  # in fish
  kubectl-dra completion fish > ~/.config/fish/completions/kubectl-dra.fish
  # in PowerShell
  kubectl-dra completion powershell | Out-String | Invoke-Expression

To complete kubectl dra <TAB>, kubectl runs the program kubectl_complete-dra on the PATH. pip, pipx and uv install it;
if it is missing, the choice "kubectl" prints it. The other scripts complete kubectl-dra itself, typed with a hyphen.
Names of pods, claims, devices and so on are read from the cluster (or from --snapshot) for at most 1.5 s
(KUBECTL_DRA_COMPLETION_TIMEOUT, in seconds; 0 means never).

\b
Exit codes:
  0  printed
  2  error: usage
"""
