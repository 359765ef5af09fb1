/** The bytes of a file; a string is taken as base64, as the API takes it. */
export type Content = string | Uint8Array | ArrayBuffer | Blob;

export interface Attachment {
  filename: string;
  content: Content;
  /** Else guessed from the name. */
  contentType?: string;
  /** Makes it an image that the HTML shows by `cid:`. */
  contentId?: string;
}

export async function encodeAttachment(attachment: Attachment): Promise<Record<string, unknown>> {
  return { ...attachment, content: await base64Of(attachment.content) };
}

async function base64Of(content: Content): Promise<string> {
  if (typeof content === "string") return content;
  if (content instanceof Uint8Array) return encode(content);
  if (content instanceof ArrayBuffer) return encode(new Uint8Array(content));
  if (typeof content?.arrayBuffer === "function") return encode(new Uint8Array(await content.arrayBuffer()));
  throw new TypeError("An attachment's content is base64 in a string, a Buffer, a Uint8Array, an ArrayBuffer or a Blob.");
}

// btoa wants a string of bytes, and a call takes only so many arguments. A multiple of 3, so that the pieces join.
const PIECE = 3 * 8_192;

function encode(bytes: Uint8Array): string {
  let encoded = "";
  for (let start = 0; start < bytes.length; start += PIECE) {
    encoded += btoa(String.fromCharCode(...bytes.subarray(start, start + PIECE)));
  }
  return encoded;
}
