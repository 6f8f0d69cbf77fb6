// Backups: making, downloading and deleting them. To restore one, Annabelle must not run.
import { get, getBlob, post } from "../api.js";
import { ask, button, bytes, codeBlock, h, replace, table, time, toast } from "../dom.js";

export async function show(root) {
  const list = h("div");
  const draw = async () => {
    const { backups } = await get("/backups");
    replace(list, backupTable(backups, draw), restoreSteps(backups[0]?.path ?? "FILE"));
  };
  const make = async () => {
    const made = await post("/backups");
    toast(`Backed up to ${made.name} (${bytes(made.size)}).${made.leftOut.length ? ` Not in it: ${made.leftOut.join(", ")}.` : ""}`);
    await draw();
  };
  await draw();
  replace(
    root,
    h("h2", {}, "Backup"),
    h("p", {}, "A backup is everything in one file: conversations, memory, skills, settings and your files. Keep it as safe as the home: whoever has it can read it."),
    h("div", { className: "row" }, button("Make a backup", make, { className: "primary" })),
    h("p", {}, "Keys, tokens and accounts are not in these. To have them in it, encrypted with a passphrase, type in a terminal"),
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
  const columns = [
    { label: "Backup", cell: (one) => h("code", {}, one.name) },
    { label: "Made", cell: (one) => time(one.madeAt) },
    { label: "Size", cell: (one) => bytes(one.size) },
    { label: "Actions", cell: (one) => h("div", { className: "row" }, button("Download", download(one), { "aria-label": `Download ${one.name}` }), button("Delete", remove(one), { className: "danger", "aria-label": `Delete ${one.name}` })) },
  ];
  return [h("h3", {}, "Backups on this machine"), table(columns, rows, { caption: "Backups", empty: "There is none yet. One is made every night." })];
}

function restoreSteps(path) {
  return [
    h("h3", {}, "Restore"),
    h("p", {}, "Annabelle must not run meanwhile, so this is done in a terminal. What is there now is moved aside."),
    codeBlock(`annabelle down\nannabelle restore --force '${path}'\nannabelle up`),
  ];
}
