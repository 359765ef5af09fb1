/** One page of a list. */
export interface Page<T> {
  data: T[];
  total: number;
  page: number;
  limit: number;
}

export interface Paging {
  /** Starts at 1. */
  page?: number;
  /** At most 100. */
  limit?: number;
}

/**
 * A list: `await` it for one page, or iterate over all items with `for await`.
 *
 * Pages are requested one after the other. An item that moves to the next page because a newer item was added is not
 * repeated.
 */
export class List<T extends object> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #fetchPage: (page: number | undefined) => Promise<Page<T>>;

  constructor(fetchPage: (page: number | undefined) => Promise<Page<T>>) {
    this.#fetchPage = fetchPage;
  }

  then<A = Page<T>, B = never>(
    fulfilled?: ((page: Page<T>) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#fetchPage(undefined).then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    let page = await this.#fetchPage(undefined);
    let known = new Set<string>();
    while (page.data.length > 0) {
      for (const item of page.data) if (!known.has(identityOf(item))) yield item;
      if (page.page * page.limit >= page.total) return;
      known = new Set(page.data.map(identityOf));
      page = await this.#fetchPage(page.page + 1);
    }
  }
}

/** Return the id of an item. Members and audit entries have none and are compared as a whole. */
function identityOf(item: object): string {
  return "id" in item ? String(item.id) : JSON.stringify(item);
}
