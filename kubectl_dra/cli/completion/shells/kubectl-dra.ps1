# PowerShell completion of kubectl-dra. Load it with:
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
