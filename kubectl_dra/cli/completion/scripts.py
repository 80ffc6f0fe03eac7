"""The scripts that make shells ask ``kubectl-dra __complete``; ``completions/`` holds them as files."""

from __future__ import annotations

from typing import Final

FILES: Final = {
    "bash": "kubectl-dra.bash",
    "zsh": "_kubectl-dra",
    "fish": "kubectl-dra.fish",
    "powershell": "kubectl-dra.ps1",
    "kubectl": "kubectl_complete-dra",
}
"""Shell to the name of its file."""

_KUBECTL = """#!/bin/sh
# kubectl runs this to complete `kubectl dra <TAB>`: put it on the PATH beside kubectl-dra.
exec kubectl-dra __complete "$@"
"""

_BASH = r"""# bash completion of kubectl-dra (bash 4.4 or newer). Load it with: source <(kubectl-dra completion bash)

# Joins what bash has split at = and : again. Sets words (up to the cursor).
__kubectl_dra_words() {
    local line=${COMP_LINE:0:COMP_POINT} word index
    words=()
    for ((index = 0; index <= COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if ((index > 0)) && [[ -n $word && $line == "$word"* ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        line=${line#"${line%%[![:space:]]*}"}
        line=${line#"$word"}
    done
}

__kubectl_dra() {
    local words candidate directive current value prefix line out
    __kubectl_dra_words
    current=${words[${#words[@]}-1]}
    COMPREPLY=()
    out=$("${words[0]}" __complete "${words[@]:1}" 2>/dev/null) || return
    directive=${out##*:}
    out=${out%:*}
    # Only what follows the last = or : is a word to bash.
    value=$current
    [[ $current == -*=* ]] && value=${current#*=}
    prefix=
    [[ $value == *[:=]* && $COMP_WORDBREAKS == *:* ]] && prefix=${value%"${value##*[:=]}"}
    while IFS= read -r line; do
        candidate=${line%%$'\t'*}
        [[ -n $candidate ]] && COMPREPLY+=("$(printf %q "${candidate#"$prefix"}")")
    done <<<"$out"
    ((directive & 2)) && compopt -o nospace
    ((directive & 32)) && compopt -o nosort 2>/dev/null
    if ((directive & 16)); then
        compopt -o filenames
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$value")
    elif ((${#COMPREPLY[@]} == 0 && !(directive & 4))); then
        compopt -o filenames
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$value")
    fi
}

complete -F __kubectl_dra kubectl-dra
"""

_ZSH = r"""#compdef kubectl-dra
# zsh completion of kubectl-dra. Save it as _kubectl-dra in a directory of fpath, or load it with:
#   source <(kubectl-dra completion zsh)

_kubectl-dra() {
    local -a lines plain described options
    local directive line candidate
    lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    (( $#lines )) || return 1
    directive=${lines[-1]#:}
    lines=("${(@)lines[1,-2]}")
    if [[ $words[CURRENT] == -*=* ]]; then
        compset -P '*='
    fi
    for line in "${lines[@]}"; do
        [[ -n $line ]] || continue
        candidate=${line%%$'\t'*}
        plain+=("$candidate")
        if [[ $line == *$'\t'* ]]; then
            described+=("$candidate -- ${line#*$'\t'}")
        else
            described+=("$candidate")
        fi
    done
    (( directive & 2 )) && options+=(-S '')
    (( directive & 32 )) && options+=(-V names)
    if (( $#plain )); then
        compadd "${options[@]}" -l -d described -a plain
    elif (( directive & 16 )); then
        _files -/
    elif (( !(directive & 4) )); then
        _files
    fi
}

if [[ $funcstack[1] == _kubectl-dra ]]; then
    _kubectl-dra "$@"
elif (( $+functions[compdef] )); then
    compdef _kubectl-dra kubectl-dra
fi
"""

_FISH = r"""# fish completion of kubectl-dra. Save it as ~/.config/fish/completions/kubectl-dra.fish

function __kubectl_dra_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l program $words[1]
    set -l current $words[-1]
    set -l lines ($program __complete $words[2..-1] 2>/dev/null)
    set -l directive (string replace ':' '' -- $lines[-1])
    # fish replaces the whole word, so what precedes the value goes before each candidate.
    set -l start (string match -r -- '^-[^=]*=' $current)
    set -e lines[-1]
    if set -q lines[1]
        printf "$start%s\n" $lines
    else if test (math "bitand($directive, 4)") -eq 0
        set -l value (string replace -r -- '^-[^=]*=' '' $current)
        if test (math "bitand($directive, 16)") -ne 0
            printf "$start%s\n" (__fish_complete_directories $value '')
        else
            printf "$start%s\n" (__fish_complete_path $value '')
        end
    end
end

complete -c kubectl-dra -e
complete -c kubectl-dra -f -k -a '(__kubectl_dra_complete)'
"""

_POWERSHELL = r"""# PowerShell completion of kubectl-dra. Load it with:
#   kubectl-dra completion powershell | Out-String | Invoke-Expression

Register-ArgumentCompleter -Native -CommandName 'kubectl-dra' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $elements = @($commandAst.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursorPosition })
    $words = @($elements | Select-Object -Skip 1 | ForEach-Object { $_.Extent.Text.Trim('"', "'") })
    if ($wordToComplete -eq '') { $words += '""' }
    $lines = @(& $elements[0].Extent.Text __complete @words 2>$null)
    if ($lines.Count -eq 0) { return }
    $directive = [int]$lines[-1].TrimStart(':')
    $start = ''
    if ($wordToComplete -match '^(-[^=]*=)') { $start = $Matches[1] }
    $found = @($lines | Select-Object -SkipLast 1 | Where-Object { $_ })
    foreach ($line in $found) {
        $name, $meaning = $line -split "`t", 2
        if (-not $meaning) { $meaning = $name }
        $text = "$start$name"
        if (-not ($directive -band 2)) { $text += ' ' }
        [System.Management.Automation.CompletionResult]::new($text, $name, 'ParameterValue', $meaning)
    }
    # Nothing returned lets PowerShell complete file names; an empty word keeps it from doing so.
    if ($found.Count -eq 0 -and ($directive -band 4)) { '' }
}
"""

SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH, "powershell": _POWERSHELL, "kubectl": _KUBECTL}
"""Shell to its script."""
