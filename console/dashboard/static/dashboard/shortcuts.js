// Keyboard shortcuts: "/" searches, "g" and a letter open a page, "?" lists them. The dialog turns them off and on.
document.addEventListener("DOMContentLoaded", () => {
  const dialog = document.querySelector("#shortcuts-dialog");
  if (!dialog) return;
  const pages = new Map([...dialog.querySelectorAll("[data-key]")].map((link) => [link.dataset.key, link.href]));
  const toggle = dialog.querySelector("input");
  const searchUrl = dialog.dataset.search;
  let isAfterG = false;
  let timer = 0;

  toggle.checked = localStorage.getItem("shortcuts") !== "off";
  toggle.addEventListener("change", () => localStorage.setItem("shortcuts", toggle.checked ? "on" : "off"));

  function search() {
    const field = document.querySelector("main input[type=search]");
    if (field) field.focus();
    else location.assign(`${searchUrl}#search`);
  }

  function show() {
    if (!dialog.open) dialog.showModal();
  }

  // The link of the account menu has this anchor.
  function readAnchor() {
    if (location.hash === "#search") search();
    if (location.hash !== "#shortcuts") return;
    history.replaceState(null, "", location.pathname + location.search);
    show();
  }

  document.addEventListener("keydown", (event) => {
    if (!toggle.checked || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (dialog.open || event.target.closest("input, select, textarea, [contenteditable=true]")) return;
    const page = isAfterG && pages.get(event.key);
    isAfterG = false;
    clearTimeout(timer);
    if (page) {
      location.assign(page);
    } else if (event.key === "/") {
      search();
    } else if (event.key === "?") {
      show();
    } else if (event.key === "g") {
      isAfterG = true;
      timer = setTimeout(() => { isAfterG = false; }, 2000);
      return;
    } else {
      return;
    }
    event.preventDefault();
  });
  window.addEventListener("hashchange", readAnchor);
  readAnchor();
});
