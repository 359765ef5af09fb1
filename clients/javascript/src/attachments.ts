/** The content of a file. A string must be base64. */
export type Content = string | Uint8Array | ArrayBuffer | Blob;

export interface Attachment {
  filename: string;
  content: Content;
  /** Default: guessed from the filename. */
  contentType?: string;
  /** Makes it an inline image that HTML refers to with `cid:`. */
  contentId?: string;
  /**
   * Whether it is another form of the email, such as an invitation of the type `text/calendar; method=REQUEST`, for
   * mail programs that know its type.
   */
  alternative?: boolean;
}

/** Return the fields of an email with the contents of its files in base64. */
export async function withEncodedAttachments(email: { attachments?: Attachment[] | null }): Promise<object> {
  if (!email.attachments) return { ...email };
  return { ...email, attachments: await Promise.all(email.attachments.map(encoded)) };
}

async function encoded(attachment: Attachment): Promise<object> {
  return { ...attachment, content: await base64Of(attachment.content) };
}

async function base64Of(content: Content): Promise<string> {
  if (typeof content === "string") return content;
  if (content instanceof Uint8Array) return encode(content);
  if (content instanceof ArrayBuffer) return encode(new Uint8Array(content));
  if (typeof content?.arrayBuffer === "function") return encode(new Uint8Array(await content.arrayBuffer()));
  throw new TypeError("An attachment's content must be a base64 string, a Buffer, a Uint8Array, an ArrayBuffer or a Blob.");
}

// btoa takes a binary string, and calls have a limited number of arguments. A multiple of 3, so that chunks can be joined.
const CHUNK_BYTES = 3 * 8_192;

function encode(bytes: Uint8Array): string {
  let encoded = "";
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    encoded += btoa(String.fromCharCode(...bytes.subarray(start, start + CHUNK_BYTES)));
  }
  return encoded;
}
