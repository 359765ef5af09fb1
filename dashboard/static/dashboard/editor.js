// Template editor: checks and previews the template shortly after the last key press.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("[data-editor]");
  if (!form) return;
  const status = form.querySelector("[data-status]");
  const subject = form.querySelector("[data-subject]");
  const missing = form.querySelector("[data-missing]");
  const field = (name) => form.elements.namedItem(name);
  let timer = 0;
  let latestCheck = 0;

  async function check() {
    const thisCheck = ++latestCheck;
    const response = await fetch(form.dataset.check, { method: "POST", body: new FormData(form) }).catch(() => null);
    // Ignore the response to an older version of the form.
    if (thisCheck !== latestCheck || !response || !response.ok) return;
    const result = await response.json();
    const isValid = !result.error;
    status.textContent = isValid ? form.dataset.valid : result.error;
    status.dataset.tone = isValid ? "success" : "danger";
    for (const name of ["subject", "html", "text", "data"]) {
      field(name).setAttribute("aria-invalid", String(result.field === name));
    }
    missing.replaceChildren(...(result.missing || []).map(tag));
    missing.closest("[data-missing-box]").hidden = !(result.missing || []).length;
    if (!isValid) return;
    subject.textContent = result.subject;
    show();
  }

  // A new frame for each preview: navigating one frame would add entries to the browser history.
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
