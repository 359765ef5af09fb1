// The template editor: what is written is checked and shown a moment after the last key.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("[data-editor]");
  if (!form) return;
  const status = form.querySelector("[data-status]");
  const subject = form.querySelector("[data-subject]");
  const missing = form.querySelector("[data-missing]");
  const field = (name) => form.elements.namedItem(name);
  let timer = 0;
  let turn = 0;

  async function check() {
    const mine = ++turn;
    const response = await fetch(form.dataset.check, { method: "POST", body: new FormData(form) }).catch(() => null);
    // An answer that was overtaken says nothing about what stands there now.
    if (mine !== turn || !response || !response.ok) return;
    const found = await response.json();
    const isRight = !found.error;
    status.textContent = isRight ? form.dataset.right : found.error;
    status.dataset.tone = isRight ? "success" : "danger";
    for (const name of ["subject", "html", "text", "data"]) {
      field(name).setAttribute("aria-invalid", String(found.field === name));
    }
    missing.replaceChildren(...(found.missing || []).map(tag));
    missing.closest("[data-missing-box]").hidden = !(found.missing || []).length;
    if (!isRight) return;
    subject.textContent = found.subject;
    show();
  }

  // A new frame for each preview: one that is navigated would fill the history of the Back button.
  function show() {
    const old = form.querySelector("iframe");
    const frame = old.cloneNode();
    old.replaceWith(frame);
    form.requestSubmit(form.querySelector("[data-preview]"));
  }

  function tag(name) {
    const element = document.createElement("code");
    element.className = "pr-tag";
    element.textContent = name;
    return element;
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, 300);
  });
  check();
});
