// Files for the person: what the server sent with the token, or what is drawn here.

export function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replaceAll(/[/\\:*?"<>|]/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// On the page's own background: a transparent picture is unreadable in a dark viewer.
export function saveCanvas(canvas, name) {
  const copy = document.createElement("canvas");
  copy.width = canvas.width;
  copy.height = canvas.height;
  const pen = copy.getContext("2d");
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--bg");
  pen.fillRect(0, 0, copy.width, copy.height);
  pen.drawImage(canvas, 0, 0);
  copy.toBlob((blob) => saveBlob(blob, name));
}
