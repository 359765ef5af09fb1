// Filter of the refresh (parts/refresh.html): not while the page is hidden, nor while text is selected.
function mayRefresh() {
  return document.visibilityState === "visible" && getSelection().isCollapsed;
}
