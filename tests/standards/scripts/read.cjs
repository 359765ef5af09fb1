// Read each message file named on standard input with mailparser: prints {file: what it holds} as JSON.
const crypto = require("node:crypto");
const fs = require("node:fs");
const { simpleParser } = require("mailparser");

const addresses = (header) => (header ? header.value.map(({ name, address }) => [name, address]) : []);

function attachment({ filename, contentType, contentDisposition, cid, content }) {
    const digest = crypto.createHash("sha256").update(content).digest("hex");
    return { filename, contentType, disposition: contentDisposition, cid: cid ?? null, digest };
}

async function main() {
    const found = {};
    for (const file of JSON.parse(fs.readFileSync(0, "utf8")).files) {
        const options = { skipHtmlToText: true, skipTextToHtml: true, skipImageLinks: true };
        const mail = await simpleParser(fs.readFileSync(file), options);
        found[file] = {
            subject: mail.subject ?? "",
            messageId: mail.messageId,
            date: mail.date.toISOString(),
            from: addresses(mail.from),
            to: addresses(mail.to),
            cc: addresses(mail.cc),
            replyTo: addresses(mail.replyTo),
            bcc: addresses(mail.bcc),
            list: mail.headers.get("list") ?? null,
            text: mail.text ?? "",
            html: mail.html || "",
            attachments: mail.attachments.map(attachment),
        };
    }
    console.log(JSON.stringify(found));
}

main();
