"use strict";
// Starts kubectl dra lsp for YAML files and hands it to VS Code.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const [command, ...args] = workspace.getConfiguration("kubectl-dra").get("command");
  client = new LanguageClient("kubectl-dra", "kubectl-dra", { command, args }, { documentSelector: [{ language: "yaml" }] });
  return client.start();
};

exports.deactivate = () => client?.stop();
