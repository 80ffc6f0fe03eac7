-- Opens a claim with a wrong attribute, waits for the finding, asks what it means, applies the fix, prints each.
local words, file = vim.split(vim.env.LSP_COMMAND, " "), vim.env.LSP_FILE
local function wait(what, condition)
  if not vim.wait(60000, condition, 50) then
    print("nothing came: " .. what)
    vim.cmd("cquit")
  end
end

vim.cmd("edit " .. file)
local buffer = vim.api.nvim_get_current_buf()
local client = vim.lsp.start_client({ name = "kubectl-dra", cmd = words, root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(buffer, client)
wait("findings", function() return #vim.diagnostic.get(buffer) > 0 end)
local found = vim.diagnostic.get(buffer)[1]
local line = vim.api.nvim_buf_get_lines(buffer, found.lnum, found.lnum + 1, false)[1]
print("underlined: " .. line:sub(found.col + 1, found.end_col))

local place = { line = found.lnum, character = found.end_col - 2 }
local document = { uri = vim.uri_from_bufnr(buffer) }
local told = vim.lsp.buf_request_sync(buffer, "textDocument/hover", { textDocument = document, position = place }, 60000)
print("explained: " .. vim.split(told[client].result.contents.value, "\n")[1])

local asked = { textDocument = document, range = { start = place, ["end"] = place }, context = { diagnostics = {} } }
local actions = vim.lsp.buf_request_sync(buffer, "textDocument/codeAction", asked, 60000)
local action = actions[client].result[1]
print("offered: " .. action.title)
vim.lsp.util.apply_workspace_edit(action.edit, "utf-16")
wait("findings of the fixed text", function() return #vim.diagnostic.get(buffer) == 0 end)
print("fixed: " .. vim.trim(vim.api.nvim_buf_get_lines(buffer, found.lnum, found.lnum + 1, false)[1]))
vim.cmd("qall!")
