// Runs inside Visual Studio Code, as its tests of extensions do: opens files, asks for what a person would ask, and writes
// the answers as JSON into the folder that is open.
const fs = require("fs");
const path = require("path");
const vscode = require("vscode");

const until = async (what, get) => {
  for (let tries = 0; tries < 600; tries++) {
    const value = await get();
    if (value) return value;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`nothing came: ${what}`);
};

const ask = async (folder) => {
  const open = async (name) => vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder, name));
  const claim = await open("claim.yaml");
  const findings = () => vscode.languages.getDiagnostics(claim.uri);
  const [found] = await until("findings", () => findings().length && findings());
  const answers = { code: found.code.value, underlined: claim.getText(found.range) };

  const hovers = await vscode.commands.executeCommand("vscode.executeHoverProvider", claim.uri, found.range.end.translate(0, -2));
  answers.explained = hovers.flatMap((hover) => hover.contents.map((part) => part.value)).join("\n");

  const place = claim.positionAt(claim.getText().indexOf("exactly:\n") + "exactly:\n        ".length);
  const proposed = await vscode.commands.executeCommand("vscode.executeCompletionItemProvider", claim.uri, place);
  answers.proposed = proposed.items.map((item) => item.label.label ?? item.label);

  const symbols = await vscode.commands.executeCommand("vscode.executeDocumentSymbolProvider", claim.uri);
  answers.symbols = symbols.map((symbol) => symbol.name);

  const actions = await vscode.commands.executeCommand("vscode.executeCodeActionProvider", claim.uri, found.range);
  const fix = actions.find((action) => action.edit && action.title.includes("productName"));
  answers.offered = fix.title;
  await vscode.workspace.applyEdit(fix.edit);
  await until("the fixed text has no findings", () => findings().length === 0);
  answers.fixed = claim.lineAt(found.range.start.line).text.trim();

  const pod = await open("pod.yaml");
  const template = pod.positionAt(pod.getText().indexOf("resourceClaimTemplateName: ") + 30);
  const definitions = await until("a definition", async () => {
    const places = await vscode.commands.executeCommand("vscode.executeDefinitionProvider", pod.uri, template);
    return places.length && places;
  });
  answers.definition = path.basename((definitions[0].targetUri ?? definitions[0].uri).fsPath);
  return answers;
};

exports.run = async () => {
  const folder = vscode.workspace.workspaceFolders[0].uri;
  const answers = await ask(folder).catch((error) => ({ error: String(error.stack) }));
  const file = path.join(folder.fsPath, "answers.json");
  fs.writeFileSync(`${file}.part`, JSON.stringify(answers));
  fs.renameSync(`${file}.part`, file);
};
