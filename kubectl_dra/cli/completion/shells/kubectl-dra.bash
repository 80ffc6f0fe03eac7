# bash completion of kubectl-dra (bash 4.4 or newer). Load it with: source <(kubectl-dra completion bash)

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
