// Filter of the refresh (parts/refresh.html): not while the page is hidden, nor while text or rows are selected.
function mayRefresh() {
  if (document.querySelector("main [name=selected]:checked")) return false;
  return document.visibilityState === "visible" && getSelection().isCollapsed;
}
