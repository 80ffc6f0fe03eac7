# fish completion of kubectl-dra. Save it as ~/.config/fish/completions/kubectl-dra.fish

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
