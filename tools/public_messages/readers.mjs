// Reads the files in messages/ that the input names, one a line, with mailparser and postal-mime, and writes the results
// as JSON into answers/.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { simpleParser } from "mailparser";
import PostalMime from "postal-mime";

const addresses = (found) =>
    [found].flat().flatMap((one) => one?.value ?? one ?? []).flatMap((one) => one.group ?? [one]).map((one) => one.address ?? "");
const digest = (content) => createHash("sha256").update(new Uint8Array(content)).digest("hex");
const entry = (name, content) => ({ name: name ?? "", size: new Uint8Array(content).length, sha256: digest(content) });

async function withMailparser(source) {
    const found = await simpleParser(source, { skipImageLinks: true, keepDeliveryStatus: true });
    return {
        subject: found.subject ?? "",
        from: addresses(found.from),
        to: addresses(found.to),
        text: found.text ?? "",
        html: found.html || "",
        attachments: found.attachments.map((one) => entry(one.filename, one.content)),
    };
}

async function withPostalMime(source) {
    const found = await PostalMime.parse(source, { forceRfc822Attachments: true });
    return {
        subject: found.subject ?? "",
        from: addresses(found.from),
        to: addresses(found.to),
        text: found.text ?? "",
        html: found.html ?? "",
        attachments: found.attachments.map((one) => entry(one.filename, one.content)),
    };
}

// mailparser throws in its streams for some messages.
let fail = () => {};
process.on("uncaughtException", (error) => fail(error));

async function read(reader, source) {
    try {
        return await Promise.race([reader(source), new Promise((_, reject) => (fail = reject))]);
    } catch (error) {
        return { error: String(error) };
    }
}

for await (const name of createInterface({ input: process.stdin })) {
    const source = readFileSync(`messages/${name}`);
    const answer = { mailparser: await read(withMailparser, source), "postal-mime": await read(withPostalMime, source) };
    writeFileSync(`answers/${name}`, JSON.stringify(answer));
}
