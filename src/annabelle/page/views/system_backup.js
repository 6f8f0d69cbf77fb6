// Backups: making, downloading, restoring and deleting them.
import { get, getBlob, post } from "../api.js";
import { ask, button, bytes, codeBlock, h, replace, table, time, toast } from "../dom.js";
import { restart } from "./system.js";

export async function show(root) {
  const list = h("div");
  const draw = async () => {
    const { backups } = await get("/backups");
    replace(list, backupTable(backups, draw));
  };
  const make = async () => {
    const made = await post("/backups");
    toast(`Backed up to ${made.name} (${bytes(made.size)}).${made.leftOut.length ? ` Not in it: ${made.leftOut.join(", ")}.` : ""}`);
    await draw();
  };
  await draw();
  replace(
    root,
    h("h2", "Backup"),
    h("p", "A backup is everything in one file: conversations, memory, skills, settings and your files. Keep it as safe as the home: whoever has it can read it."),
    h("div.row", button("Make a backup", make, { className: "primary" })),
    h("p", "Keys, tokens and accounts are not in these. To have them in it, encrypted with a passphrase, type in a terminal"),
    codeBlock("annabelle backup annabelle.backup"),
    list,
  );
}

function backupTable(rows, redraw) {
  const remove = (one) => async () => {
    if (!(await ask(`Delete ${one.name}?`, [], { yes: "Delete", danger: true, text: "It is gone for good." }))) return;
    await post(`/backups/${one.name}/delete`);
    await redraw();
  };
  const download = (one) => async () => {
    const url = URL.createObjectURL(await getBlob(`/backups/${one.name}`));
    h("a", { href: url, download: one.name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  const restoreIt = (one) => async () => {
    const text = "Conversations, memory, goals, skills and your files become what they were then. Settings, keys and accounts stay as they are now. What is there now is moved aside. Annabelle restarts.";
    if (await ask(`Restore ${one.name}?`, [], { yes: "Restore", danger: true, text })) await restart(`/backups/${one.name}/restore`);
  };
  const named = (verb, one, more) => ({ "aria-label": `${verb} ${one.name}`, ...more });
  const actions = (one) => [
    button("Download", download(one), named("Download", one)),
    button("Restore", restoreIt(one), named("Restore", one)),
    button("Delete", remove(one), named("Delete", one, { className: "danger" })),
  ];
  const columns = [
    { label: "Backup", cell: (one) => h("code", one.name) },
    { label: "Made", cell: (one) => time(one.madeAt) },
    { label: "Size", cell: (one) => bytes(one.size) },
    { label: "Actions", cell: (one) => h("div.row", actions(one)) },
  ];
  return [h("h3", "Backups on this machine"), table(columns, rows, { caption: "Backups", empty: "There is none yet. One is made every night." })];
}
