import type {
	IDataObject,
	IExecuteFunctions,
	IHookFunctions,
	IHttpRequestMethods,
	ILoadOptionsFunctions,
	JsonObject,
} from 'n8n-workflow';
import { NodeApiError } from 'n8n-workflow';

type Context = IExecuteFunctions | IHookFunctions | ILoadOptionsFunctions;

export interface Call {
	method: IHttpRequestMethods;
	/** The path after /v1. Escape ids with `segment`. */
	path: string;
	query?: IDataObject;
	body?: IDataObject;
	idempotencyKey?: string;
	itemIndex?: number;
}

interface Page {
	data: IDataObject[];
	total: number;
	continueTo?: string;
}

const PAGE_SIZE = 100;

/** Call the API with the credential. Throws NodeApiError with the code, detail and fields of the error response. */
export async function call<T>(context: Context, { method, path, query, body, idempotencyKey, itemIndex }: Call): Promise<T> {
	const { baseUrl } = await context.getCredentials<{ baseUrl: string }>('postriderApi');
	const response = (await context.helpers.httpRequestWithAuthentication.call(context, 'postriderApi', {
		method,
		url: `${baseUrl.replace(/\/+$/, '')}/v1${path}`,
		qs: query,
		body,
		json: true,
		headers: idempotencyKey ? { 'Idempotency-Key': idempotencyKey } : {},
		// Redirects are errors: following one would turn a POST into a GET.
		disableFollowRedirect: true,
		returnFullResponse: true,
		ignoreHttpStatusErrors: true,
	})) as { statusCode: number; body: T };
	if (response.statusCode >= 200 && response.statusCode < 300) return response.body;
	throw apiError(context, response.statusCode, response.body, itemIndex);
}

/** Request the pages of a list until there are enough items, and older ones with `continueTo`. */
export async function callForAll(context: Context, list: Call, max: number): Promise<IDataObject[]> {
	const items = new Map<unknown, IDataObject>();
	const limit = Math.min(PAGE_SIZE, max);
	let to = list.query?.to;
	for (let page = 1; ; page++) {
		const query = { ...list.query, ...(to ? { to } : {}), page, limit };
		const { data, total, continueTo } = await call<Page>(context, { ...list, query });
		// An email of the same millisecond is in both lists.
		for (const item of data) items.set(item.id ?? item, item);
		const isLast = data.length === 0 || page * limit >= total;
		if (items.size >= max || (isLast && !continueTo) || (continueTo && continueTo === to)) {
			return [...items.values()].slice(0, max);
		}
		if (continueTo) [to, page] = [continueTo, 0];
	}
}

/** Escape an id for a path. An empty id would address the whole collection, and dots a parent path. */
export function segment(id: unknown): string {
	if (typeof id !== 'string' || /^\.*$/.test(id.trim())) throw new Error('The ID is empty');
	return encodeURIComponent(id.trim());
}

function apiError(context: Context, status: number, body: unknown, itemIndex: number | undefined): NodeApiError {
	// Proxies may respond with any body, such as HTML.
	const problem = (typeof body === 'object' && body !== null ? body : {}) as IDataObject;
	const fields = ((problem.errors as IDataObject[]) ?? []).map(({ field, detail }) => `${field}: ${detail}`);
	return new NodeApiError(context.getNode(), problem as JsonObject, {
		itemIndex,
		httpCode: String(status),
		message: problem.code ? `${problem.title} (${problem.code})` : `The service responded with status ${status}`,
		description: fields.join('\n') || String(problem.detail ?? 'Check the base URL of the credential.'),
	});
}
