// Buttons of grouped choices (parts/grouped_choices.html): check all boxes of a group or a field, or none if all are.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("[data-check-all]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const boxes = [...button.parentElement.querySelectorAll("input[type=checkbox]")];
      const isChecked = !boxes.every((box) => box.checked);
      for (const box of boxes) box.checked = isChecked;
    });
  }
});
