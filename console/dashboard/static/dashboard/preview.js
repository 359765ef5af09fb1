// Previews as high as their content: iframe[data-fit], whose sandbox allows no scripts but keeps the origin.
document.addEventListener("DOMContentLoaded", () => {
  for (const frame of document.querySelectorAll("iframe[data-fit]")) {
    frame.addEventListener("load", () => fit(frame));
    // Another width, or the first time that it is visible.
    new ResizeObserver(() => fit(frame)).observe(frame.parentElement);
    fit(frame);
  }
});

const MAX_HEIGHT = 20000;

function fit(frame) {
  const width = frame.clientWidth;
  const root = frame.contentDocument?.documentElement;
  // Measured once for each document and width: an email whose height depends on its frame would grow forever.
  if (!width || !root || (frame.dataset.width === String(width) && frame.fitted === root)) return;
  frame.dataset.width = width;
  frame.fitted = root;
  frame.style.height = "0";
  frame.style.height = `${Math.min(Math.max(root.scrollHeight, 120), MAX_HEIGHT)}px`;
}
