// The command palette: Ctrl-K, or the link in the header, opens it; arrows choose an entry, Enter follows it.
// The pages of objects that were seen last in this tab, until it is closed or the person signs out.
const SEEN = "postrider-seen";
const MOST_SEEN = 6;

document.addEventListener("DOMContentLoaded", () => {
  const dialog = document.querySelector("#palette");
  if (!dialog) return sessionStorage.removeItem(SEEN);
  const seen = readSeen();
  remember();
  const field = dialog.querySelector("input");
  const list = dialog.querySelector("[role=listbox]");
  let asked = null;
  let timer = 0;

  function show() {
    if (dialog.open) return;
    field.value = "";
    dialog.showModal();
    load();
  }

  function readSeen() {
    const stored = JSON.parse(sessionStorage.getItem(SEEN) || "null");
    return stored?.workspace === dialog.dataset.workspace ? stored.pages : [];
  }

  // A page with a crumb and an id, which has a digit, is that of an object.
  function remember() {
    const title = document.querySelector("h1 .pr-crumb ~ .truncate")?.textContent.trim();
    if (!title || !/^\/dashboard\/[a-z]+\/[^/]*\d[^/]*\/$/.test(location.pathname)) return;
    const note = document.querySelector("h1 .pr-crumb").textContent.trim();
    const pages = [{ title, note, url: location.pathname }, ...seen.filter((page) => page.url !== location.pathname)];
    const kept = { workspace: dialog.dataset.workspace, pages: pages.slice(0, MOST_SEEN) };
    sessionStorage.setItem(SEEN, JSON.stringify(kept));
  }

  function seenGroup() {
    const group = document.createElement("div");
    const heading = document.createElement("p");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", dialog.dataset.recent);
    heading.setAttribute("aria-hidden", "true");
    heading.textContent = dialog.dataset.recent;
    group.append(heading, ...seen.filter((page) => page.url !== location.pathname).map(seenEntry));
    return group;
  }

  function seenEntry(page) {
    const link = document.createElement("a");
    const [icon, title, note] = ["span", "bdi", "small"].map((name) => document.createElement(name));
    link.href = page.url;
    link.setAttribute("role", "option");
    link.tabIndex = -1;
    icon.className = "material-symbols-outlined";
    icon.setAttribute("aria-hidden", "true");
    [icon.textContent, title.textContent, note.textContent] = ["history", page.title, page.note];
    link.append(icon, title, note);
    return link;
  }

  async function load() {
    const query = field.value;
    asked = query;
    const response = await fetch(`${dialog.dataset.url}?${new URLSearchParams({ q: query })}`).catch(() => null);
    // A later request answers what is written now.
    if (asked !== query || !response?.ok || response.redirected) return;
    list.innerHTML = await response.text();
    const recent = seenGroup();
    if (!query && recent.childElementCount > 1) list.prepend(recent);
    options().forEach((option, index) => { option.id = `palette-${index}`; });
    select(0);
  }

  function options() {
    return [...list.querySelectorAll("[role=option]")];
  }

  function select(place) {
    const all = options();
    const chosen = all[(place + all.length) % all.length];
    for (const option of all) option.setAttribute("aria-selected", option === chosen);
    if (!chosen) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  function chosen() {
    return options().findIndex((option) => option.getAttribute("aria-selected") === "true");
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(load, 150);
  });
  field.addEventListener("keydown", async (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown") select(chosen() + 1);
    else if (event.key === "ArrowUp") select(chosen() - 1);
    else if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(timer);
      if (asked !== field.value) await load();
      options()[chosen()]?.click();
      return;
    } else return;
    event.preventDefault();
  });
  // A click beside the dialog.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-palette]") || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    if (document.querySelector("dialog[open]:not(#palette)")) return;
    event.preventDefault();
    show();
  });
});
