import { render } from 'preact';
import './style/colours.css';
import './style/base.css';
import './style/bar.css';
import './style/controls.css';
import './style/market.css';
import './style/symbol.css';
import './style/data.css';
import './style/narrow.css';
import { openFeed } from './feed/market-feed.ts';
import { Page } from './view/page.tsx';
import { applyTheme } from './view/theme.tsx';

applyTheme();
const source = { onChange: () => {} };
const feed = openFeed(() => source.onChange());
render(<Page feed={feed} source={source} />, document.getElementById('page')!);
